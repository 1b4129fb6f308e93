"""Backward pass of striped ring attention: keys and their gradients go around together."""
import torch
import torch.distributed as dist


def operation(q, k, v, dout, lse, delta, ring: int):
    """q, k, v, dout: [heads, rows, 64] bf16; lse, delta: [heads, rows]. Returns dq, dk, dv, dbias."""
    world, rank, rows = dist.get_world_size(), dist.get_rank(), q.shape[1]
    first = rank // ring * ring
    size = min(ring, world - first)
    me = rank - first
    q, dout = q.float(), dout.float()
    dq = torch.zeros_like(q)
    here = torch.stack([k.float(), v.float(), dq, dq])  # k, v, dk, dv
    row = torch.arange(rows, device=q.device)
    for step in range(size):
        source = (me - step) % size
        visible = (row[None, :] * size + source) <= (row[:, None] * size + me)
        weights = torch.exp(q @ here[0].transpose(1, 2) / 8 - lse[:, :, None]) * visible
        slopes = weights * (dout @ here[1].transpose(1, 2) - delta[:, :, None])
        dq += slopes @ here[0] / 8
        here[2] += slopes.transpose(1, 2) @ q / 8
        here[3] += weights.transpose(1, 2) @ dout
        if size > 1:  # after the last step gradients come home
            after = torch.empty_like(here)
            requests = dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.isend, here, first + (me + 1) % size),
                    dist.P2POp(dist.irecv, after, first + (me - 1) % size),
                ]
            )
            for request in requests:
                request.wait()
            here = after
    dbias = dq.sum(dim=1)
    dist.all_reduce(dbias)
    return dq, here[2], here[3], dbias


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for heads, rows in ((1, 8), (2, 16)):
        rows_of = [torch.randint(-2, 3, (heads, rows, 64), device="cuda").to(torch.bfloat16) for _ in range(4)]
        lse, delta = (torch.rand(heads, rows, device="cuda") * 2 - 1 for _ in range(2))
        operation(*rows_of, lse, delta, ring=4)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
