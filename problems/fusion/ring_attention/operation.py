"""Causal ring attention; rank r has chunks r and 2 * world - 1 - r of the sequence."""
import torch
import torch.distributed as dist


def operation(q, k, v, out) -> None:
    """q, k, v: [heads, 2 * chunk, 64] bf16; out: the same in float."""
    world, rank, chunk = dist.get_world_size(), dist.get_rank(), q.shape[1] // 2
    row = torch.arange(chunk, device=q.device)

    def positions(r):
        return torch.cat([r * chunk + row, (2 * world - 1 - r) * chunk + row])

    maximum = torch.full((*q.shape[:2], 1), -1e30, device=q.device)
    sums, output = torch.zeros_like(maximum), torch.zeros(q.shape, device=q.device)
    here = torch.stack([k, v])
    for step in range(world):
        source = (rank - step) % world
        if step + 1 < world:  # pass keys and values on while they are used
            after = torch.empty_like(here)
            requests = dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.isend, here, (rank + 1) % world),
                    dist.P2POp(dist.irecv, after, (rank - 1) % world),
                ]
            )
        scores = q.float() @ here[0].float().transpose(1, 2) / 8
        visible = positions(source)[None, None, :] <= positions(rank)[None, :, None]
        scores = torch.where(visible, scores, -1e30)
        highest = torch.maximum(maximum, scores.amax(dim=2, keepdim=True))
        weights = torch.where(visible, torch.exp(scores - highest), 0)
        fade = torch.exp(maximum - highest)
        sums = sums * fade + weights.sum(dim=2, keepdim=True)
        output = output * fade + weights @ here[1].float()
        maximum = highest
        if step + 1 < world:
            for request in requests:
                request.wait()
            here = after
    out.copy_(output / sums)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for heads, chunk in ((1, 8), (1, 12)):
        q, k = (torch.randint(-3, 4, (heads, 2 * chunk, 64), device="cuda").to(torch.bfloat16) for _ in "qk")
        v = (torch.rand(heads, 2 * chunk, 64, device="cuda") * 2 - 1).to(torch.bfloat16)
        operation(q, k, v, torch.empty(heads, 2 * chunk, 64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
