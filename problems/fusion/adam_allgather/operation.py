"""One step of Adam on the shard of each rank, then all new parameters on all ranks."""
import torch
import torch.distributed as dist


def operation(param, grad, m, v, params, new_m, new_v) -> None:
    """params: [world, n]; all others: [n]."""
    torch.add(0.875 * m, grad, alpha=0.125, out=new_m)
    torch.add(0.984375 * v.abs(), grad.square(), alpha=0.015625, out=new_v)
    q = new_m / (new_v.sqrt() + 2**-10)
    dist.all_gather_into_tensor(params.view(-1), param - 0.125 * (q + 0.03125 * param))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (2048, 12288):
        param, grad, m, v = (torch.randint(0, 9, (n,), device="cuda").float() for _ in range(4))
        params = torch.empty(dist.get_world_size(), n, device="cuda")
        operation(param, grad, m, v, params, torch.empty_like(m), torch.empty_like(v))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
